# What awslane.FromEnv and the command line read. variables holds all of it, for `export`.
output "variables" {
  description = "The environment variables of programs that trigger runs or look at them"
  value       = "RUNLANE_ENV=${var.environment} RUNLANE_TABLE=${local.table_name} RUNLANE_QUEUES=${local.queues} AWS_REGION=${data.aws_region.current.region}"
}

# What kinds of programs call, as tests record it: the policy of an aws_iam_role_policy.
output "trigger_policy" {
  description = "The policy of programs that trigger runs, and wait for them"
  value = jsonencode({
    Version = "2012-10-17"
    Statement = concat([
      {
        Effect = "Allow"
        Action = [
          "dynamodb:BatchGetItem", "dynamodb:ConditionCheckItem", "dynamodb:DeleteItem", "dynamodb:DescribeTable",
          "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Query", "dynamodb:UpdateItem",
        ]
        Resource = local.table_arn
      },
      { Effect = "Allow", Action = "dynamodb:Query", Resource = "${local.table_arn}/index/due" },
      { Effect = "Allow", Action = ["sqs:GetQueueAttributes", "sqs:SendMessage"], Resource = local.work_queue_arns },
    ], local.uses_key)
  })
}

output "operator_policy" {
  description = "The policy of operators, for all that the command line does but a worker"
  value = jsonencode({
    Version = "2012-10-17"
    Statement = concat([
      {
        Effect = "Allow"
        Action = [
          "dynamodb:BatchGetItem", "dynamodb:ConditionCheckItem", "dynamodb:DeleteItem", "dynamodb:DescribeTable",
          "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Query", "dynamodb:Scan", "dynamodb:UpdateItem",
        ]
        Resource = local.table_arn
      },
      { Effect = "Allow", Action = "dynamodb:Query", Resource = ["${local.table_arn}/index/due", "${local.table_arn}/index/done"] },
      { Effect = "Allow", Action = ["sqs:GetQueueAttributes", "sqs:SendMessage"], Resource = local.work_queue_arns },
    ], local.uses_key)
  })
}

output "read_policy" {
  description = "The policy of programs that only look"
  value = jsonencode({
    Version = "2012-10-17"
    Statement = concat([
      {
        Effect = "Allow"
        Action = [
          "dynamodb:BatchGetItem", "dynamodb:DescribeTable", "dynamodb:GetItem", "dynamodb:Query", "dynamodb:Scan",
        ]
        Resource = local.table_arn
      },
      { Effect = "Allow", Action = "dynamodb:Query", Resource = ["${local.table_arn}/index/due", "${local.table_arn}/index/done"] },
      { Effect = "Allow", Action = "sqs:GetQueueAttributes", Resource = local.work_queue_arns },
    ], local.uses_key)
  })
}

output "environment_name" {
  description = "RUNLANE_ENV"
  value       = var.environment
}

output "table_name" {
  description = "RUNLANE_TABLE"
  value       = local.table_name
}

output "table_arn" {
  description = "For the policies of programs that trigger runs"
  value       = local.table_arn
}

output "queues" {
  description = "RUNLANE_QUEUES"
  value       = local.queues
}

output "work_queue_arn" {
  description = "For the policies of programs that trigger runs"
  value       = aws_sqs_queue.work["work"].arn
}

output "work_dead_letters_url" {
  description = "Wakeups that the bridge could not handle"
  value       = aws_sqs_queue.dead_letters["work"].url
}

output "fifo_work_queue_arn" {
  description = "For the policies of programs that trigger runs"
  value       = aws_sqs_queue.work["fifo"].arn
}

output "fifo_work_dead_letters_url" {
  description = "Wakeups of the FIFO queue that the bridge could not handle"
  value       = aws_sqs_queue.dead_letters["fifo"].url
}

output "relay_failures_url" {
  description = "Stream batches that the relay gave up"
  value       = aws_sqs_queue.failures["relay"].url
}

output "tick_dead_letters_url" {
  description = "Invocations of the tick that failed"
  value       = aws_sqs_queue.failures["tick"].url
}

output "bridge_function" {
  description = "Name of the function"
  value       = aws_lambda_function.role["bridge"].function_name
}

output "relay_function" {
  description = "Name of the function"
  value       = aws_lambda_function.role["relay"].function_name
}

output "tick_function" {
  description = "Name of the function, for ticking by hand"
  value       = aws_lambda_function.role["tick"].function_name
}

output "bridge_role" {
  description = "Name of the role that runs are executed with: attach what your tasks may do"
  value       = aws_iam_role.function["bridge"].name
}

output "server_function" {
  description = "Name of the function"
  value       = one([for role, f in aws_lambda_function.role : f.function_name if role == "server"])
}

output "server_url" {
  description = "Where the server answers callers whom IAM lets in"
  value       = one(aws_lambda_function_url.server[*].function_url)
}
