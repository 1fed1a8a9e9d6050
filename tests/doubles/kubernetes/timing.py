"""How long the double takes over what takes Kubernetes long."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Timing:
    """Seconds. In brackets, what they are in Kubernetes."""

    # After a failed pod the next comes this much later, twice as much with each further one [10 and
    # 600 in the controller's source; its documentation says 360].
    pod_backoff: float = 0.2
    pod_backoff_longest: float = 2.0
    # Between two tries to pull an image, doubling as well [10 and 300].
    pull_backoff: float = 0.5
    pull_backoff_longest: float = 2.0
    # How long a pod with a subdomain waits for its Service: Docker can name a container only when
    # it starts, while in Kubernetes the Service may come later.
    service_wait: float = 3.0
    # How often the controllers look though nothing changed, for what is due by time alone.
    tick: float = 0.1


QUICK = Timing()
