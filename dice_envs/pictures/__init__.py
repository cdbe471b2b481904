"""A game's picture as text, SVG and pixels (`render`), from its layout (`drawing`); observations in words (`describe`)."""
