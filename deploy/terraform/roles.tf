# What each function may do: what it was seen doing (a test records it), what its mapping does in its name, and its logs.
locals {
  secrets         = { bridge = var.bridge_secrets, relay = var.relay_secrets, tick = var.tick_secrets, server = var.server_secrets }
  uses_key        = var.kms_key == "" ? [] : [{ Effect = "Allow", Action = ["kms:Decrypt", "kms:GenerateDataKey"], Resource = var.kms_key }]
  work_queue_arns = [aws_sqs_queue.work["work"].arn, aws_sqs_queue.work["fifo"].arn]

  statements = {
    bridge = [
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
      # The queues that it takes wakeups of. DeleteMessage and ReceiveMessage are the mappings'.
      {
        Effect   = "Allow"
        Action   = ["sqs:ChangeMessageVisibility", "sqs:DeleteMessage", "sqs:ReceiveMessage"]
        Resource = local.work_queue_arns
      },
    ]
    relay = [
      {
        Effect   = "Allow"
        Action   = ["dynamodb:BatchGetItem", "dynamodb:DescribeTable", "dynamodb:GetItem", "dynamodb:UpdateItem"]
        Resource = local.table_arn
      },
      { Effect = "Allow", Action = ["sqs:GetQueueAttributes", "sqs:SendMessage"], Resource = local.work_queue_arns },
      {
        Effect   = "Allow"
        Action   = ["dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"]
        Resource = local.stream_arn
      },
      # AWS knows no resource for it. It names streams and shows nothing of what is in them.
      { Effect = "Allow", Action = "dynamodb:ListStreams", Resource = "*" },
      { Effect = "Allow", Action = "sqs:SendMessage", Resource = aws_sqs_queue.failures["relay"].arn },
    ]
    tick = [
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
      { Effect = "Allow", Action = "sqs:SendMessage", Resource = aws_sqs_queue.failures["tick"].arn },
    ]
    # With the scope read alone it may do what read_policy of the outputs allows, with others what operator_policy does.
    server = concat(
      [
        {
          Effect   = "Allow"
          Action   = ["dynamodb:BatchGetItem", "dynamodb:DescribeTable", "dynamodb:GetItem", "dynamodb:Query", "dynamodb:Scan"]
          Resource = local.table_arn
        },
        { Effect = "Allow", Action = "dynamodb:Query", Resource = ["${local.table_arn}/index/due", "${local.table_arn}/index/done"] },
        { Effect = "Allow", Action = "sqs:GetQueueAttributes", Resource = local.work_queue_arns },
      ],
      [for changes in length(setsubtract(var.server_scopes, ["read", "payloads"])) == 0 ? [] : [true] :
        {
          Effect   = "Allow"
          Action   = ["dynamodb:ConditionCheckItem", "dynamodb:DeleteItem", "dynamodb:PutItem", "dynamodb:UpdateItem"]
          Resource = local.table_arn
        }
      ],
      [for changes in length(setsubtract(var.server_scopes, ["read", "payloads"])) == 0 ? [] : [true] :
        { Effect = "Allow", Action = "sqs:SendMessage", Resource = local.work_queue_arns }
      ],
    )
  }
}

# Roles are known in all Regions of an account: the name is a beginning alone.
resource "aws_iam_role" "function" {
  for_each             = local.functions
  name_prefix          = "${substr(var.name, 0, 28)}-${each.key}-"
  permissions_boundary = var.permissions_boundary == "" ? null : var.permissions_boundary
  assume_role_policy = jsonencode({
    Version   = "2012-10-17"
    Statement = [{ Effect = "Allow", Principal = { Service = "lambda.amazonaws.com" }, Action = "sts:AssumeRole" }]
  })
}

resource "aws_iam_role_policy" "function" {
  for_each = local.functions
  name     = each.key
  role     = aws_iam_role.function[each.key].name
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat(
      local.statements[each.key],
      [{
        Effect   = "Allow"
        Action   = ["logs:CreateLogStream", "logs:PutLogEvents"]
        Resource = "${aws_cloudwatch_log_group.function[each.key].arn}:*"
      }],
      [for secrets in [local.secrets[each.key]] :
        { Effect = "Allow", Action = ["secretsmanager:GetSecretValue", "ssm:GetParameter"], Resource = secrets } if length(secrets) > 0
      ],
      local.uses_key,
    )
  })
}

# The network interfaces of a function in a VPC, which AWS's own policy allows.
resource "aws_iam_role_policy_attachment" "vpc" {
  for_each   = { for role, f in local.functions : role => f if local.in_vpc }
  role       = aws_iam_role.function[each.key].name
  policy_arn = "arn:${data.aws_partition.current.partition}:iam::aws:policy/service-role/AWSLambdaENIManagementAccess"
}

resource "aws_iam_role" "schedule" {
  name_prefix          = "${substr(var.name, 0, 28)}-schedule-"
  permissions_boundary = var.permissions_boundary == "" ? null : var.permissions_boundary
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = "scheduler.amazonaws.com" }
      Action    = "sts:AssumeRole"
      Condition = { StringEquals = { "aws:SourceAccount" = data.aws_caller_identity.current.account_id } }
    }]
  })
}

resource "aws_iam_role_policy" "schedule" {
  name = "schedule"
  role = aws_iam_role.schedule.name
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat(
      [
        { Effect = "Allow", Action = "lambda:InvokeFunction", Resource = aws_lambda_alias.live["tick"].arn },
        { Effect = "Allow", Action = "sqs:SendMessage", Resource = aws_sqs_queue.failures["tick"].arn },
      ],
      local.uses_key,
    )
  })
}
