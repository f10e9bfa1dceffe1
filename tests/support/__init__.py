"""What several test rooms share: recordings of real servers, and the shared test data."""
