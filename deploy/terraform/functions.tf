locals {
  in_vpc    = length(var.subnets) > 0
  serves    = length(var.server_scopes) > 0
  functions = { for role, f in local.roles : role => f if role != "server" || local.serves }
  roles = {
    bridge = { description = "Executes the runs that wakeups name", timeout = var.bridge_timeout, memory = var.bridge_memory, recursive = true }
    relay  = { description = "Publishes the wakeups that no other process has published", timeout = 60, memory = 256, recursive = false }
    # Less than the minute to the next one. Two at once are harmless.
    tick = { description = "Finds, once a minute, whatever a wakeup missed", timeout = 55, memory = 256, recursive = true }
    # More than a request may take, and a start before it. A stream of events ends by then, and its caller goes on.
    server = { description = "Answers requests to its URL, for programs and for people", timeout = 90, memory = 256, recursive = false }
  }
}

resource "aws_cloudwatch_log_group" "function" {
  for_each          = local.functions
  name              = "/aws/lambda/${var.name}-${each.key}"
  retention_in_days = var.log_retention
  kms_key_id        = var.kms_key == "" ? null : var.kms_key
}

# One program in all roles but the server's, which is another one. A change of the code or of the configuration publishes a version, and the alias goes to it at once.
resource "aws_lambda_function" "role" {
  for_each         = local.functions
  function_name    = "${var.name}-${each.key}"
  description      = each.value.description
  role             = aws_iam_role.function[each.key].arn
  runtime          = "provided.al2023"
  architectures    = ["arm64"]
  layers           = length(var.layers) > 0 ? var.layers : null
  kms_key_arn      = var.kms_key == "" ? null : var.kms_key
  handler          = "bootstrap"
  filename         = each.key == "server" ? var.server_code : var.code
  source_code_hash = filebase64sha256(each.key == "server" ? var.server_code : var.code)
  publish          = true
  memory_size      = each.value.memory
  timeout          = each.value.timeout
  # Bridges that use up the account's concurrency leave the tick its own. -1 reserves none.
  reserved_concurrent_executions = each.key == "tick" && var.tick_concurrency > 0 ? var.tick_concurrency : -1

  environment {
    variables = merge(var.code_variables, {
      AWS_NEW_RETRIES_2026 = "true"
      RUNLANE_ENV          = var.environment
      RUNLANE_FUNCTION     = each.key
      RUNLANE_METRICS      = var.metrics ? "on" : "off"
      RUNLANE_QUEUES       = local.queues
      # Read by nothing. Without it nothing would change with revision, with another stream of the same table, or with half a network.
      RUNLANE_REVISION = "${var.revision} ${var.existing_table} ${join(",", var.security_groups)}"
      # Each function reads its own, and its role allows no other.
      RUNLANE_SECRETS = join(" ", [for role in each.key == "server" ? ["server"] : ["bridge", "relay", "tick"] :
        "${role}=${join(",", local.secrets[role])}"
      ])
      RUNLANE_TABLE = local.table_name
      },
      # Of RUNLANE_QUEUES, those that its mappings take: tasks of others may need longer.
      each.key == "bridge" ? { RUNLANE_BINDINGS = join(",", compact([var.standard_queue, var.fifo_queue])) } : {},
      each.key == "server" ? {
        RUNLANE_SERVER_BUFFERED = local.in_vpc ? "on" : "off"
        RUNLANE_SERVER_SCOPES   = join(",", var.server_scopes)
      } : {},
    )
  }
  logging_config {
    log_format            = "JSON"
    application_log_level = var.log_level
    system_log_level      = "WARN"
    log_group             = aws_cloudwatch_log_group.function[each.key].name
  }
  tracing_config {
    mode = "PassThrough"
  }
  dynamic "vpc_config" {
    for_each = local.in_vpc ? [var.subnets] : []
    content {
      subnet_ids         = vpc_config.value
      security_group_ids = var.security_groups
    }
  }
  dynamic "dead_letter_config" {
    for_each = each.key == "tick" ? [aws_sqs_queue.failures["tick"].arn] : []
    content {
      target_arn = dead_letter_config.value
    }
  }

  lifecycle {
    precondition {
      condition     = each.key != "server" || var.server_code != ""
      error_message = "server_scopes needs server_code: the server is another program."
    }
    precondition {
      condition     = local.in_vpc == (length(var.security_groups) > 0)
      error_message = "subnets and security_groups go together."
    }
  }

  depends_on = [aws_iam_role_policy.function, aws_iam_role_policy_attachment.vpc]
}

resource "aws_lambda_alias" "live" {
  for_each         = local.functions
  name             = "live"
  function_name    = aws_lambda_function.role[each.key].function_name
  function_version = aws_lambda_function.role[each.key].version
}

# IAM says who calls. A URL streams nothing from a VPC.
resource "aws_lambda_function_url" "server" {
  count              = local.serves ? 1 : 0
  function_name      = aws_lambda_function.role["server"].function_name
  qualifier          = aws_lambda_alias.live["server"].name
  authorization_type = "AWS_IAM"
  invoke_mode        = local.in_vpc ? "BUFFERED" : "RESPONSE_STREAM"
}

# A run may trigger runs for ever, a retry is one more message: loops are the product. alarm_invocations watches them.
resource "aws_lambda_function_recursion_config" "loops" {
  for_each       = { for role, f in local.functions : role => f if f.recursive }
  function_name  = aws_lambda_function.role[each.key].function_name
  recursive_loop = "Allow"
}

resource "aws_lambda_event_source_mapping" "wakeups" {
  for_each                = local.work_queues
  event_source_arn        = aws_sqs_queue.work[each.key].arn
  function_name           = aws_lambda_alias.live["bridge"].arn
  enabled                 = each.key == "work" || var.fifo_queue != ""
  batch_size              = var.bridge_batch_size
  function_response_types = ["ReportBatchItemFailures"]
  scaling_config {
    maximum_concurrency = var.bridge_concurrency
  }
}

resource "aws_lambda_event_source_mapping" "commits" {
  event_source_arn               = local.stream_arn
  function_name                  = aws_lambda_alias.live["relay"].arn
  starting_position              = "TRIM_HORIZON"
  batch_size                     = 100
  bisect_batch_on_function_error = true
  maximum_retry_attempts         = 10
  maximum_record_age_in_seconds  = 3600
  function_response_types        = ["ReportBatchItemFailures"]
  # Only log items with a row that is pending from the start: all else costs no invocation.
  filter_criteria {
    filter {
      pattern = jsonencode({ eventName = ["INSERT"], dynamodb = { NewImage = { relay = { S = ["1"] } } } })
    }
  }
  destination_config {
    on_failure {
      destination_arn = aws_sqs_queue.failures["relay"].arn
    }
  }
}

# The scheduler hands the event over and Lambda would repeat it: the next minute is repetition enough.
resource "aws_lambda_function_event_invoke_config" "tick" {
  function_name                = aws_lambda_function.role["tick"].function_name
  qualifier                    = aws_lambda_alias.live["tick"].name
  maximum_event_age_in_seconds = 60
  maximum_retry_attempts       = 0
}

resource "aws_scheduler_schedule" "tick" {
  name                = "${var.name}-tick"
  schedule_expression = "rate(1 minute)"
  flexible_time_window {
    mode = "OFF"
  }
  target {
    arn      = aws_lambda_alias.live["tick"].arn
    role_arn = aws_iam_role.schedule.arn
    retry_policy {
      maximum_event_age_in_seconds = 60
      maximum_retry_attempts       = 0
    }
    dead_letter_config {
      arn = aws_sqs_queue.failures["tick"].arn
    }
  }

  depends_on = [aws_iam_role_policy.schedule]
}
