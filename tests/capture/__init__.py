"""Tests of the bridges."""
