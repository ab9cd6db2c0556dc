"""What the HTML page says, as frozen values of clean text. The templates only lay these values out."""
