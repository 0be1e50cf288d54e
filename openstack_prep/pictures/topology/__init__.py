"""How the networks of a project are connected: the drawing that a person makes on a whiteboard."""
