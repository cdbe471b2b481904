"""A game's picture as text, SVG and pixels, and its observations in words."""
