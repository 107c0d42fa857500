"""Train models on the data of askew: classifiers, selectors, rankers, rewriters and query generators."""
