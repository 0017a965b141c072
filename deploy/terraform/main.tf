# An environment of Runlane: the stack of a project's template.yaml. docs/deploying.md, Terraform.

terraform {
  required_version = ">= 1.5"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 6.0"
    }
  }
}

variable "name" {
  description = "Name of the stack, and the beginning of every name in it."
  type        = string
}

variable "template" {
  description = "File that `sam package` wrote: the built template, which names the code."
  type        = string
}

variable "bucket" {
  description = "S3 bucket for the template. It is too large to be given as text."
  type        = string
}

variable "parameters" {
  description = "Parameters of the template by their names; those left out have its defaults."
  type        = map(string)
  default     = {}
}

variable "tags" {
  description = "Tags of the stack and of what is in it."
  type        = map(string)
  default     = {}
}

data "aws_s3_bucket" "code" {
  bucket = var.bucket
}

# Another template has another key, so that the stack is updated.
resource "aws_s3_object" "template" {
  bucket = var.bucket
  key    = "${var.name}/${filesha256(var.template)}.yaml"
  source = var.template
}

resource "aws_cloudformation_stack" "runlane" {
  name         = var.name
  template_url = "https://${data.aws_s3_bucket.code.bucket_regional_domain_name}/${aws_s3_object.template.key}"
  parameters   = var.parameters
  capabilities = ["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"]
  tags         = var.tags
}

output "outputs" {
  description = "Outputs of the template by their names. Variables is what programs need in their environment."
  value       = aws_cloudformation_stack.runlane.outputs
}
