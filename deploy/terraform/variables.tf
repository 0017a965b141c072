variable "name" {
  description = "Names what is made, as a stack's name does. One account and Region has each name once."
  type        = string
  validation {
    condition     = can(regex("^[A-Za-z][A-Za-z0-9-]{0,54}$", var.name))
    error_message = "A letter, then letters, digits and hyphens, at most 55 characters."
  }
}

variable "code" {
  description = "The zip of the program, with a bootstrap in it. It is bridge, relay and tick, by RUNLANE_FUNCTION."
  type        = string
}

variable "server_code" {
  description = "The zip of the server's program, which is another one; needed with server_scopes."
  type        = string
  default     = ""
}

variable "code_variables" {
  description = "Environment variables of the program. Those that begin with RUNLANE_ are set here."
  type        = map(string)
  default     = {}
}

variable "environment" {
  description = "Every key and every message is scoped by it. One deployment ticks an environment."
  type        = string
  default     = "default"
  validation {
    condition     = can(regex("^(?:[A-Za-z0-9][A-Za-z0-9._-]{0,63})$", var.environment))
    error_message = "Of the form [A-Za-z0-9][A-Za-z0-9._-]{0,63}."
  }
}

variable "standard_queue" {
  description = "The application's queue that the standard SQS queue carries. With default, that queue carries every other queue too."
  type        = string
  default     = "default"
  validation {
    condition     = can(regex("^(?:[A-Za-z0-9][A-Za-z0-9._-]{0,63})$", var.standard_queue))
    error_message = "Of the form [A-Za-z0-9][A-Za-z0-9._-]{0,63}."
  }
}

variable "fifo_queue" {
  description = "The application's queue that the FIFO queue carries. Empty, none is, and it costs nothing."
  type        = string
  default     = ""
  validation {
    condition     = can(regex("^(?:([A-Za-z0-9][A-Za-z0-9._-]{0,63})?)$", var.fifo_queue))
    error_message = "Of the form ([A-Za-z0-9][A-Za-z0-9._-]{0,63})?."
  }
}

variable "bridge_timeout" {
  description = "Seconds that an invocation of the bridge may take, and with it an attempt. The queues' visibility timeout is six times that."
  type        = number
  default     = 60
  validation {
    condition     = contains([30, 60, 120, 300, 600, 900], var.bridge_timeout)
    error_message = "One of 30, 60, 120, 300, 600, 900."
  }
}

variable "bridge_memory" {
  description = "Megabytes of the bridge; processor time grows with it."
  type        = number
  default     = 256
  validation {
    condition     = var.bridge_memory >= 128 && var.bridge_memory <= 10240
    error_message = "From 128 to 10240."
  }
}

variable "bridge_batch_size" {
  description = "Most wakeups in one invocation. They share its time, so 1 suits long attempts."
  type        = number
  default     = 10
  validation {
    condition     = var.bridge_batch_size >= 1 && var.bridge_batch_size <= 10
    error_message = "From 1 to 10."
  }
}

variable "bridge_concurrency" {
  description = "Most invocations of the bridge at once, for each of its queues."
  type        = number
  default     = 50
  validation {
    condition     = var.bridge_concurrency >= 2 && var.bridge_concurrency <= 1000
    error_message = "From 2 to 1000."
  }
}

variable "tick_concurrency" {
  description = "Environments that are kept free for the tick. 0 keeps none, which an account with a limit of 10 needs."
  type        = number
  default     = 2
  validation {
    condition     = var.tick_concurrency >= 0
    error_message = "At least 0."
  }
}

variable "maximum_read_units" {
  description = "Most read units a second of the table, and of each index. 0 for the account's own limit."
  type        = number
  default     = 0
  validation {
    condition     = var.maximum_read_units >= 0
    error_message = "At least 0."
  }
}

variable "maximum_write_units" {
  description = "Most write units a second of the table, and of each index. 0 for the account's own limit."
  type        = number
  default     = 0
  validation {
    condition     = var.maximum_write_units >= 0
    error_message = "At least 0."
  }
}

variable "server_scopes" {
  description = "What callers of the server's URL may do, of read, payloads, trigger and operate. Without any there is no server."
  type        = list(string)
  default     = []
  validation {
    condition     = alltrue([for scope in var.server_scopes : can(regex("^(?:(read|payloads|trigger|operate))$", scope))])
    error_message = "Each is read, payloads, trigger or operate."
  }
}

variable "existing_table" {
  description = "Stream ARN of a table to use, one that was made before or that was restored. Empty, the module makes a table."
  type        = string
  default     = ""
  validation {
    condition     = can(regex("^(?:(arn:[a-z-]+:dynamodb:[a-z0-9-]+:[0-9]{12}:table/[A-Za-z0-9_.-]{3,255}/stream/[0-9T:.-]+)?)$", var.existing_table))
    error_message = "The LatestStreamArn of a table."
  }
}

variable "deletion_protection" {
  description = "Refuses to delete the table, for every caller."
  type        = bool
  default     = true
}

variable "recovery_days" {
  description = "Days that the table can be restored to any second of."
  type        = number
  default     = 35
  validation {
    condition     = var.recovery_days >= 1 && var.recovery_days <= 35
    error_message = "From 1 to 35."
  }
}

variable "log_retention" {
  description = "Days that logs are kept."
  type        = number
  default     = 30
  validation {
    condition     = contains([1, 3, 5, 7, 14, 30, 60, 90, 180, 365], var.log_retention)
    error_message = "One of 1, 3, 5, 7, 14, 30, 60, 90, 180, 365."
  }
}

variable "log_level" {
  description = "The lowest level that the functions log."
  type        = string
  default     = "INFO"
  validation {
    condition     = contains(["DEBUG", "INFO", "WARN", "ERROR"], var.log_level)
    error_message = "One of DEBUG, INFO, WARN, ERROR."
  }
}

variable "revision" {
  description = "Any text. Another one publishes a version of every function."
  type        = string
  default     = ""
  validation {
    condition     = can(regex("^(?:[A-Za-z0-9._-]{0,64})$", var.revision))
    error_message = "Of the form [A-Za-z0-9._-]{0,64}."
  }
}

variable "bridge_secrets" {
  description = "Secrets that the bridge reads when it starts, ARNs of Secrets Manager and Parameter Store."
  type        = list(string)
  default     = []
  validation {
    condition     = alltrue([for one in var.bridge_secrets : can(regex("^(?:arn:[a-z-]+:(secretsmanager|ssm):[^, ]+)$", one))])
    error_message = "ARNs of Secrets Manager and Parameter Store."
  }
}

variable "relay_secrets" {
  description = "Those of the relay."
  type        = list(string)
  default     = []
  validation {
    condition     = alltrue([for one in var.relay_secrets : can(regex("^(?:arn:[a-z-]+:(secretsmanager|ssm):[^, ]+)$", one))])
    error_message = "ARNs of Secrets Manager and Parameter Store."
  }
}

variable "tick_secrets" {
  description = "Those of the tick."
  type        = list(string)
  default     = []
  validation {
    condition     = alltrue([for one in var.tick_secrets : can(regex("^(?:arn:[a-z-]+:(secretsmanager|ssm):[^, ]+)$", one))])
    error_message = "ARNs of Secrets Manager and Parameter Store."
  }
}

variable "server_secrets" {
  description = "Those of the server."
  type        = list(string)
  default     = []
  validation {
    condition     = alltrue([for one in var.server_secrets : can(regex("^(?:arn:[a-z-]+:(secretsmanager|ssm):[^, ]+)$", one))])
    error_message = "ARNs of Secrets Manager and Parameter Store."
  }
}

variable "kms_key" {
  description = "ARN of a KMS key that encrypts table, queues, logs and variables. Empty, AWS's own keys do."
  type        = string
  default     = ""
  validation {
    condition     = can(regex("^(?:(arn:[a-z-]+:kms:[a-z0-9-]+:[0-9]{12}:key/.+)?)$", var.kms_key))
    error_message = "The ARN of a key."
  }
}

variable "subnets" {
  description = "Ids of subnets, to run the functions in a VPC. DynamoDB, SQS and the logs have to be reachable there."
  type        = list(string)
  default     = []
  validation {
    condition     = alltrue([for one in var.subnets : can(regex("^(?:subnet-[0-9a-f]+)$", one))])
    error_message = "Ids of subnets."
  }
}

variable "security_groups" {
  description = "Ids of the functions' security groups there."
  type        = list(string)
  default     = []
  validation {
    condition     = alltrue([for one in var.security_groups : can(regex("^(?:sg-[0-9a-f]+)$", one))])
    error_message = "Ids of security groups."
  }
}

variable "permissions_boundary" {
  description = "ARN of a policy that bounds every role."
  type        = string
  default     = ""
  validation {
    condition     = can(regex("^(?:(arn:[a-z-]+:iam::[^:]+:policy/.+)?)$", var.permissions_boundary))
    error_message = "The ARN of a policy."
  }
}

variable "layers" {
  description = "ARNs of layer versions of every function."
  type        = list(string)
  default     = []
  validation {
    condition     = alltrue([for one in var.layers : can(regex("^(?:arn:[a-z-]+:lambda:[^,]+:layer:[^,]+:[0-9]+)$", one))])
    error_message = "ARNs of layer versions."
  }
}

variable "metrics" {
  description = "The functions' own metrics, priced each while it is sent."
  type        = bool
  default     = true
}

variable "dashboard" {
  description = "The dashboard."
  type        = bool
  default     = true
}

variable "alarms" {
  description = "All alarms. Each also has a separate parameter."
  type        = bool
  default     = true
}

variable "alarm_topic" {
  description = "ARN of the SNS topic that alarms notify. Empty, they only change their state."
  type        = string
  default     = ""
  validation {
    condition     = can(regex("^(?:(arn:[a-z-]+:sns:[a-z0-9-]+:[0-9]{12}:.+)?)$", var.alarm_topic))
    error_message = "Of the form (arn:[a-z-]+:sns:[a-z0-9-]+:[0-9]{12}:.+)?."
  }
}

variable "alarm_concurrency" {
  description = "The bridge runs near its limit of concurrency."
  type        = bool
  default     = true
}

variable "alarm_conflicts" {
  description = "Transactions meet each other on the same items often."
  type        = bool
  default     = true
}

variable "alarm_dead_letters" {
  description = "Something lies in a dead-letter queue."
  type        = bool
  default     = true
}

variable "alarm_errors" {
  description = "A function fails invocations. A gradual deployment rolls back by those of the new version."
  type        = bool
  default     = true
}

variable "alarm_invocations" {
  description = "The bridge is invoked more often than invocations_limit. Recursion is allowed, so nothing else would tell."
  type        = bool
  default     = true
}

variable "alarm_oldest_due" {
  description = "A run is due for long, or no tick says. Needs metrics."
  type        = bool
  default     = true
}

variable "alarm_oldest_message" {
  description = "A wakeup waits in a queue or in the table's stream for long."
  type        = bool
  default     = true
}

variable "alarm_refused_wakeups" {
  description = "SQS refuses wakeups. Needs metrics."
  type        = bool
  default     = true
}

variable "alarm_throttles" {
  description = "DynamoDB throttles the table or an index, or Lambda the bridge."
  type        = bool
  default     = true
}

variable "invocations_limit" {
  description = "Invocations of the bridge in five minutes that raise the alarm."
  type        = number
  default     = 100000
  validation {
    condition     = var.invocations_limit >= 1
    error_message = "At least 1."
  }
}
