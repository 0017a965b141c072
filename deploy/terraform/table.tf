# Everything else names the table by existing_table where that is given: the name and the ARN are parts of the stream's ARN.
locals {
  makes_table  = var.existing_table == ""
  table_name   = local.makes_table ? aws_dynamodb_table.runs[0].name : split("/", var.existing_table)[1]
  table_arn    = local.makes_table ? aws_dynamodb_table.runs[0].arn : split("/stream/", var.existing_table)[0]
  stream_arn   = local.makes_table ? aws_dynamodb_table.runs[0].stream_arn : var.existing_table
  limits_table = var.maximum_read_units > 0 || var.maximum_write_units > 0
  # -1 is no limit.
  limits = {
    read  = var.maximum_read_units > 0 ? var.maximum_read_units : -1
    write = var.maximum_write_units > 0 ? var.maximum_write_units : -1
  }
  indexes = {
    due = { hash = "dp", range = "da", projection = "KEYS_ONLY", attributes = null }
    done = {
      hash       = "fp", range = "fa", projection = "INCLUDE",
      attributes = ["tk", "qu", "ca", "ra", "na", "nf", "nt", "nl", "fc", "so", "sr", "ss", "sf"]
    }
  }
}

resource "aws_dynamodb_table" "runs" {
  count                       = local.makes_table ? 1 : 0
  name                        = "${var.name}-runs"
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "pk"
  range_key                   = "sk"
  stream_enabled              = true
  stream_view_type            = "NEW_IMAGE"
  deletion_protection_enabled = var.deletion_protection

  dynamic "attribute" {
    for_each = ["pk", "sk", "dp", "da", "fp", "fa"]
    content {
      name = attribute.value
      type = "S"
    }
  }
  dynamic "on_demand_throughput" {
    for_each = local.limits_table ? [local.limits] : []
    content {
      max_read_request_units  = on_demand_throughput.value.read
      max_write_request_units = on_demand_throughput.value.write
    }
  }
  dynamic "global_secondary_index" {
    for_each = local.indexes
    content {
      name               = global_secondary_index.key
      hash_key           = global_secondary_index.value.hash
      range_key          = global_secondary_index.value.range
      projection_type    = global_secondary_index.value.projection
      non_key_attributes = global_secondary_index.value.attributes
      dynamic "on_demand_throughput" {
        for_each = local.limits_table ? [local.limits] : []
        content {
          max_read_request_units  = on_demand_throughput.value.read
          max_write_request_units = on_demand_throughput.value.write
        }
      }
    }
  }
  dynamic "server_side_encryption" {
    for_each = var.kms_key == "" ? [] : [var.kms_key]
    content {
      enabled     = true
      kms_key_arn = server_side_encryption.value
    }
  }
  point_in_time_recovery {
    enabled                 = true
    recovery_period_in_days = var.recovery_days
  }
  ttl {
    attribute_name = "xt"
    enabled        = true
  }

  # The table outlives what uses it: README.md, Removing.
  lifecycle {
    prevent_destroy = true
  }
}
