"""Models trained on what askew builds and reads: classifiers, selectors, rankers. One short file for each kind."""
