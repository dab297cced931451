"""FActScore's knowledge source built anew."""
