"""What setup.cfg cannot say: all packages found, and beside them two folders that lie at the top."""

from setuptools import find_packages, setup

DATA = ["openstack_prep.heat_templates", "openstack_prep.install_configs"]  # where they lie: package_dir in setup.cfg

setup(packages=[*find_packages(include=["openstack_prep", "openstack_prep.*"]), *DATA])
