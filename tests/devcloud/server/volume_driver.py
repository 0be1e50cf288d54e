"""A Cinder driver with nothing behind it: volumes are available and attachable, and hold no data."""

import io

from cinder.volume import driver


class VolumeDriver(driver.VolumeDriver):
    VERSION = "1.0"

    def do_setup(self, context):
        pass

    def check_for_setup_error(self):
        pass

    def _update_volume_stats(self):
        self._stats = {
            "volume_backend_name": self.configuration.safe_get("volume_backend_name"),
            "vendor_name": "devcloud",
            "driver_version": self.VERSION,
            "storage_protocol": "iscsi",
            "multiattach": True,
            "total_capacity_gb": 100000,
            "free_capacity_gb": 100000,
            "allocated_capacity_gb": 0,
            "provisioned_capacity_gb": 0,
            "thin_provisioning_support": True,
            "max_over_subscription_ratio": 20,
            "reserved_percentage": 0,
        }

    def _nothing(self, *args, **kwargs):
        return None

    create_volume = delete_volume = extend_volume = _nothing
    create_snapshot = delete_snapshot = revert_to_snapshot = _nothing
    create_volume_from_snapshot = create_cloned_volume = _nothing
    ensure_export = create_export = remove_export = terminate_connection = _nothing
    create_export_snapshot = remove_export_snapshot = terminate_connection_snapshot = _nothing

    def clone_image(self, context, volume, image_location, image_meta, image_service):
        """Claim to hold the whole image: nothing is fetched, and qemu-img is not asked."""
        return {}, True

    def copy_volume_to_image(self, context, volume, image_service, image_meta):
        """Upload a raw disk of zeroes; Cinder itself has created the image, with the properties of the volume's."""
        image_service.update(context, image_meta["id"], {}, io.BytesIO(bytes(2**16)))

    def initialize_connection(self, volume, connector, **kwargs):
        target = {
            "target_discovered": False,
            "target_portal": "127.0.0.1:3260",
            "target_iqn": f"iqn.2010-10.org.openstack:{volume['id']}",
            "target_lun": 0,
            "volume_id": volume["id"],
            "access_mode": "rw",
        }
        return {"driver_volume_type": "iscsi", "data": target}

    def retype(self, context, volume, new_type, diff, host):
        return True, None
