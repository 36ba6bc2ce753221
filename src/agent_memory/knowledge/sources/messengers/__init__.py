"""Exports of chats between people."""
