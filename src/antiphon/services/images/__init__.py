"""Images that tools have made: through a service of the settings, kept in the data folder."""

from antiphon.services.images.files import ImageFiles as ImageFiles
from antiphon.services.images.service import ImageService as ImageService
from antiphon.services.images.service import open_images as open_images
