locals {
  # A batch of the FIFO queue may hold ten wakeups of one group, and one invocation may have time for the first alone: the last is
  # then received ten times before it begins. Five more are for failures, as in a standard queue.
  work_queues = {
    work = { suffix = "", fifo = false, receives = 5 }
    fifo = { suffix = ".fifo", fifo = true, receives = 15 }
  }
  queues = join(",", concat(
    ["${var.standard_queue}=${aws_sqs_queue.work["work"].url}"],
    var.fifo_queue == "" ? [] : ["${var.fifo_queue}=${aws_sqs_queue.work["fifo"].url}"],
  ))
}

# Without a name in fifo_queue the FIFO queue is bound to nothing, and its mapping is off: it costs nothing then.
resource "aws_sqs_queue" "work" {
  for_each                    = local.work_queues
  name                        = "${var.name}-work${each.value.suffix}"
  fifo_queue                  = each.value.fifo
  content_based_deduplication = each.value.fifo ? false : null
  deduplication_scope         = each.value.fifo ? "messageGroup" : null
  fifo_throughput_limit       = each.value.fifo ? "perMessageGroupId" : null
  message_retention_seconds   = 1209600
  sqs_managed_sse_enabled     = var.kms_key == "" ? true : null
  kms_master_key_id           = var.kms_key == "" ? null : var.kms_key
  visibility_timeout_seconds  = 6 * var.bridge_timeout
  redrive_policy = jsonencode({
    deadLetterTargetArn = aws_sqs_queue.dead_letters[each.key].arn
    maxReceiveCount     = each.value.receives
  })

  lifecycle {
    precondition {
      condition     = var.standard_queue != var.fifo_queue
      error_message = "standard_queue and fifo_queue are two queues of the application; give them two names."
    }
  }
}

resource "aws_sqs_queue" "dead_letters" {
  for_each                    = local.work_queues
  name                        = "${var.name}-work-dead-letters${each.value.suffix}"
  fifo_queue                  = each.value.fifo
  content_based_deduplication = each.value.fifo ? false : null
  deduplication_scope         = each.value.fifo ? "messageGroup" : null
  fifo_throughput_limit       = each.value.fifo ? "perMessageGroupId" : null
  message_retention_seconds   = 1209600
  sqs_managed_sse_enabled     = var.kms_key == "" ? true : null
  kms_master_key_id           = var.kms_key == "" ? null : var.kms_key
}

resource "aws_sqs_queue_redrive_allow_policy" "dead_letters" {
  for_each  = local.work_queues
  queue_url = aws_sqs_queue.dead_letters[each.key].url
  redrive_allow_policy = jsonencode({
    redrivePermission = "byQueue"
    sourceQueueArns   = [aws_sqs_queue.work[each.key].arn]
  })
}

# Stream batches that the relay gave up, and invocations of the tick that failed or never began. The table has what they were about,
# and the next tick looks at it.
resource "aws_sqs_queue" "failures" {
  for_each                  = { relay = "relay-failures", tick = "tick-dead-letters" }
  name                      = "${var.name}-${each.value}"
  message_retention_seconds = 1209600
  sqs_managed_sse_enabled   = var.kms_key == "" ? true : null
  kms_master_key_id         = var.kms_key == "" ? null : var.kms_key
  redrive_allow_policy      = jsonencode({ redrivePermission = "denyAll" })
}
