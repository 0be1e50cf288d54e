# What exists of the spec, such as data.external.project.result["floating_ip/api.address"].

terraform {
  required_providers {
    external = {
      source  = "hashicorp/external"
      version = "~> 2.3"
    }
  }
}

data "external" "project" {
  program    = ["python3", "${path.module}/external.py"]
  query      = { spec = var.spec, cloud = var.cloud }
  depends_on = [terraform_data.project] # after apply has run
}
