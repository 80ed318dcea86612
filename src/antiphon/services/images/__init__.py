"""Images that tools have made: through a service of the settings, kept in the database."""

from antiphon.services.images.archive import ImageArchive as ImageArchive
from antiphon.services.images.archive import address_of as address_of
from antiphon.services.images.service import ImageService as ImageService
from antiphon.services.images.service import open_images as open_images
