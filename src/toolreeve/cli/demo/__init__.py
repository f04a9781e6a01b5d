"""`toolreeve demo`: a scripted agent in a scratch folder."""
