"""A game's picture as text, SVG and pixels (`render`), where its shapes lie (`drawing`); observations in words (`describe`)."""
