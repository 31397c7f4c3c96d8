"""Phase transport and local attention: the two operations that the layer is built from."""
