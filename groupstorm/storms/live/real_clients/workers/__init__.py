"""The programs that run the client libraries, each in processes of its own."""
