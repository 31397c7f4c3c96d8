"""The layer, the network and their caches."""
