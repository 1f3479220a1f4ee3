"""What people do with neighborhoods and graphs. One file each."""
