# openstack-prep prepares the project, Terraform creates what is in it.

variable "spec" {
  type        = string
  description = "The spec of openstack-prep"
}

variable "cloud" {
  type        = string
  description = "Entry of clouds.yaml, of an administrator"
}

# terraform destroy: deletes what the spec manages. This one is never replaced, only updated in place: a replacement
# would delete the project before each apply.
resource "terraform_data" "lifetime" {
  input = { spec = abspath(var.spec), cloud = var.cloud } # when it is destroyed, only self is known

  provisioner "local-exec" {
    when        = destroy
    command     = "openstack-prep destroy --yes \"$SPEC\""
    environment = { SPEC = self.output.spec, OS_CLOUD = self.output.cloud }
  }
}

# terraform apply: applies the spec, and again when the file changes. Add the files that it includes, and variables.
resource "terraform_data" "project" {
  triggers_replace = [filesha256(var.spec)]
  depends_on       = [terraform_data.lifetime]

  provisioner "local-exec" {
    command     = "openstack-prep apply --yes \"$SPEC\""
    environment = { SPEC = abspath(var.spec), OS_CLOUD = var.cloud }
  }
}
