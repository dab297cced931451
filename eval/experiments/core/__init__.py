"""What Core's parts are worth."""
