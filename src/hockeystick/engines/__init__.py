"""What computes certified curves: ends of the range, closed form, enumeration, contour, lattice, moments."""
