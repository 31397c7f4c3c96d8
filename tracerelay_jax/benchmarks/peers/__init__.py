"""Other sequence models of as many parameters, each behind the interface of `peer.Peer`, measured beside TraceRelay."""
