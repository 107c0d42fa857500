"""Models that write texts for texts: how they are trained, and how what they write is compared with what was wanted."""
