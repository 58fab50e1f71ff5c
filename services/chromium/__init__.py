"""Chromium, as tests of the dashboard drive it."""

from services.chromium.browser import Browser, BrowserError, Page, browser_in

__all__ = ["Browser", "BrowserError", "Page", "browser_in"]
