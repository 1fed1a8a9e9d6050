"""Images: decoded and resized on the host, augmented there, a small residual net on the device."""
