"""How fast is it? Ratios against a baseline in the same run; nothing here is asserted, everything is shown."""
