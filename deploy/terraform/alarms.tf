# All alarms, by name. What most have in common stands in the resource below them; "on" says which exist.
locals {
  names = { for role, f in aws_lambda_function.role : role => f.function_name }
  age   = "A wakeup has waited for 15 minutes more than one redelivery takes; look at the bridge's errors, throttles and concurrency"
  broke = "because it could not open, crashed or ran out of time; its log says which"

  alarms = {
    concurrency = {
      on          = var.alarm_concurrency
      description = "The bridge has run at more than 80 % of what one queue may use for 15 minutes; raise bridge_concurrency"
      expression  = "100 * running / ${var.bridge_concurrency}"
      queries     = { running = { namespace = "AWS/Lambda", metric = "ConcurrentExecutions", dimensions = { FunctionName = local.names.bridge } } }
      statistic   = "Maximum"
      threshold   = 80
      periods     = 3
    }
    conflicts = {
      on          = var.alarm_conflicts
      description = "Transactions met each other on the same items more than 100 times in 5 minutes; look for a run or a key that many processes write"
      namespace   = "AWS/DynamoDB"
      metric      = "TransactionConflict"
      dimensions  = { TableName = local.table_name }
      threshold   = 100
    }
    dead-letters = {
      on          = var.alarm_dead_letters
      description = "Wakeups that no bridge could handle lie in the dead-letter queue"
      namespace   = "AWS/SQS"
      metric      = "ApproximateNumberOfMessagesVisible"
      dimensions  = { QueueName = aws_sqs_queue.dead_letters["work"].name }
      statistic   = "Maximum"
    }
    fifo-dead-letters = {
      on          = var.alarm_dead_letters && var.fifo_queue != ""
      description = "Wakeups that no bridge could handle lie in the FIFO dead-letter queue"
      namespace   = "AWS/SQS"
      metric      = "ApproximateNumberOfMessagesVisible"
      dimensions  = { QueueName = aws_sqs_queue.dead_letters["fifo"].name }
      statistic   = "Maximum"
    }
    # These two count what arrives: what lies there stays for 14 days.
    relay-failures = {
      on          = var.alarm_dead_letters
      description = "The relay gave up a batch of stream records; the tick publishes their wakeups"
      namespace   = "AWS/SQS"
      metric      = "NumberOfMessagesSent"
      dimensions  = { QueueName = aws_sqs_queue.failures["relay"].name }
    }
    tick-dead-letters = {
      on          = var.alarm_dead_letters
      description = "A tick failed or was never begun; its log says why"
      namespace   = "AWS/SQS"
      metric      = "NumberOfMessagesSent"
      dimensions  = { QueueName = aws_sqs_queue.failures["tick"].name }
    }
    bridge-errors = {
      on          = var.alarm_errors
      description = "The bridge failed invocations, ${local.broke}"
      namespace   = "AWS/Lambda"
      metric      = "Errors"
      dimensions  = { FunctionName = local.names.bridge }
      period      = 60
    }
    relay-errors = {
      on          = var.alarm_errors
      description = "The relay failed invocations, ${local.broke}"
      namespace   = "AWS/Lambda"
      metric      = "Errors"
      dimensions  = { FunctionName = local.names.relay }
      period      = 60
    }
    tick-errors = {
      on          = var.alarm_errors
      description = "The tick failed invocations, ${local.broke}"
      namespace   = "AWS/Lambda"
      metric      = "Errors"
      dimensions  = { FunctionName = local.names.tick }
      period      = 60
    }
    server-errors = {
      on          = var.alarm_errors && local.serves
      description = "The server failed invocations, ${local.broke}"
      namespace   = "AWS/Lambda"
      metric      = "Errors"
      dimensions  = { FunctionName = try(local.names.server, "") }
      period      = 60
    }
    invocations = {
      on          = var.alarm_invocations
      description = "The bridge was invoked more than invocations_limit times in 5 minutes; look for runs that trigger each other for ever"
      namespace   = "AWS/Lambda"
      metric      = "Invocations"
      dimensions  = { FunctionName = local.names.bridge }
      threshold   = var.invocations_limit
    }
    oldest-due = {
      on          = var.alarm_oldest_due && var.metrics
      description = "A run has been due for more than 5 minutes, or no tick has looked"
      namespace   = "Runlane"
      metric      = "OldestDueSeconds"
      dimensions  = { FunctionName = local.names.tick }
      statistic   = "Maximum"
      period      = 60
      threshold   = 300
      periods     = 5
      missing     = "breaching"
    }
    oldest-message = {
      on          = var.alarm_oldest_message
      description = local.age
      namespace   = "AWS/SQS"
      metric      = "ApproximateAgeOfOldestMessage"
      dimensions  = { QueueName = aws_sqs_queue.work["work"].name }
      statistic   = "Maximum"
      threshold   = 6 * var.bridge_timeout + 900
    }
    fifo-oldest-message = {
      on          = var.alarm_oldest_message && var.fifo_queue != ""
      description = local.age
      namespace   = "AWS/SQS"
      metric      = "ApproximateAgeOfOldestMessage"
      dimensions  = { QueueName = aws_sqs_queue.work["fifo"].name }
      statistic   = "Maximum"
      threshold   = 6 * var.bridge_timeout + 900
    }
    stream-age = {
      on          = var.alarm_oldest_message
      description = "The relay is more than 5 minutes behind the table's stream; look at its errors. The tick does its work meanwhile"
      namespace   = "AWS/Lambda"
      metric      = "IteratorAge"
      dimensions  = { FunctionName = local.names.relay }
      statistic   = "Maximum"
      threshold   = 300000
    }
    refused-wakeups = {
      on          = var.alarm_refused_wakeups && var.metrics
      description = "SQS did not take wakeups; look for access, a missing queue, an outage"
      expression  = "FILL(bridge, 0) + FILL(relay, 0) + FILL(tick, 0)"
      queries = { for role, name in local.names :
        role => { namespace = "Runlane", metric = "WakeupsRefused", dimensions = { FunctionName = name } } if role != "server"
      }
      periods = 2
    }
    table-throttles = {
      on          = var.alarm_throttles
      description = "DynamoDB throttled the table or an index; look for a hot partition, or a limit that was set"
      expression  = "FILL(reads, 0) + FILL(writes, 0) + FILL(dueReads, 0) + FILL(dueWrites, 0) + FILL(doneWrites, 0)"
      queries = { for id, q in {
        reads      = { metric = "ReadThrottleEvents", index = {} }
        writes     = { metric = "WriteThrottleEvents", index = {} }
        dueReads   = { metric = "ReadThrottleEvents", index = { GlobalSecondaryIndexName = "due" } }
        dueWrites  = { metric = "WriteThrottleEvents", index = { GlobalSecondaryIndexName = "due" } }
        doneWrites = { metric = "WriteThrottleEvents", index = { GlobalSecondaryIndexName = "done" } }
      } : id => { namespace = "AWS/DynamoDB", metric = q.metric, dimensions = merge({ TableName = local.table_name }, q.index) } }
      periods = 2
    }
    bridge-throttles = {
      on          = var.alarm_throttles
      description = "Lambda throttled the bridge; the account's concurrency is used up"
      namespace   = "AWS/Lambda"
      metric      = "Throttles"
      dimensions  = { FunctionName = local.names.bridge }
      periods     = 2
    }
  }
}

resource "aws_cloudwatch_metric_alarm" "watch" {
  for_each            = { for name, alarm in local.alarms : name => alarm if var.alarms && alarm.on }
  alarm_name          = "${var.name}-${each.key}"
  alarm_description   = each.value.description
  alarm_actions       = var.alarm_topic == "" ? [] : [var.alarm_topic]
  ok_actions          = var.alarm_topic == "" ? [] : [var.alarm_topic]
  comparison_operator = "GreaterThanThreshold"
  threshold           = try(each.value.threshold, 0)
  evaluation_periods  = try(each.value.periods, 1)
  treat_missing_data  = try(each.value.missing, "notBreaching")

  # Either one metric,
  namespace   = try(each.value.namespace, null)
  metric_name = try(each.value.metric, null)
  dimensions  = try(each.value.dimensions, null)
  statistic   = try(each.value.queries, null) == null ? try(each.value.statistic, "Sum") : null
  period      = try(each.value.queries, null) == null ? try(each.value.period, 300) : null

  # or several and a formula.
  dynamic "metric_query" {
    for_each = try([each.value.expression], [])
    content {
      id          = "value"
      expression  = metric_query.value
      return_data = true
    }
  }
  dynamic "metric_query" {
    for_each = try(each.value.queries, {})
    content {
      id          = metric_query.key
      return_data = false
      metric {
        namespace   = metric_query.value.namespace
        metric_name = metric_query.value.metric
        dimensions  = metric_query.value.dimensions
        stat        = try(each.value.statistic, "Sum")
        period      = 300
      }
    }
  }
}
