"""The explorer: a page on this machine's own address whose sliders move certified curves."""
