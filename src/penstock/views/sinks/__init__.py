"""Changes of views go out: to addresses of HTTP, to people by e-mail, to topics of Kafka."""

from penstock.views.sinks.again import redrive
from penstock.views.sinks.delivering import Courier, Delivery, is_dead_topic
from penstock.views.sinks.mail import Mail
from penstock.views.sinks.news import Source
from penstock.views.sinks.post import Post

__all__ = ["Courier", "Delivery", "Mail", "Post", "Source", "is_dead_topic", "redrive"]
