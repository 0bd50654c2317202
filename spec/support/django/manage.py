"""The smallest project of Django that has an application `app`, whose command and worker are the page's."""
import sys

from django.conf import settings
from django.core.management import execute_from_command_line

settings.configure(INSTALLED_APPS=["app"])
execute_from_command_line(sys.argv)
