"""Train models, one module for each: settings, data, fit."""
