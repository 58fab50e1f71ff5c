"""Tests of the services that tests and makefiles start."""
