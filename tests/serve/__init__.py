"""Tests of the views: without Spark, on frames written as the engine writes them."""
