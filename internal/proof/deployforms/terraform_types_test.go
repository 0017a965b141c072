//go:build validate

package deployforms

import (
	"maps"
	"strings"
)

type object = map[string]any

// conversions say what a resource of hashicorp/aws is in CloudFormation's words.
var conversions = map[string]func(c *comparison, r *stateResource) object{
	"aws_cloudwatch_dashboard":                tfDashboard,
	"aws_cloudwatch_log_group":                tfLogGroup,
	"aws_cloudwatch_metric_alarm":             tfAlarm,
	"aws_dynamodb_table":                      tfTable,
	"aws_iam_role":                            tfRole,
	"aws_lambda_alias":                        tfAlias,
	"aws_lambda_event_source_mapping":         tfMapping,
	"aws_lambda_function":                     tfFunction,
	"aws_lambda_function_event_invoke_config": tfInvokeConfig,
	"aws_lambda_function_url":                 tfURL,
	"aws_scheduler_schedule":                  tfSchedule,
	"aws_sqs_queue":                           tfQueue,
}

// renamed takes attributes over under other names.
func renamed(from any, names map[string]string) object {
	values, _ := from.(object)
	out := object{}
	for name, other := range names {
		if value := values[name]; value != nil {
			out[other] = value
		}
	}
	return out
}

// one is the block of a name that stands at most once, nil without.
func one(values any, name string) object {
	block, _ := at(values, name, 0).(object)
	return block
}

func tfDashboard(_ *comparison, r *stateResource) object {
	return object{"DashboardBody": parsed(textAt(r.Values, "dashboard_body"))}
}

func tfLogGroup(_ *comparison, r *stateResource) object {
	return renamed(r.Values, map[string]string{"retention_in_days": "RetentionInDays", "kms_key_id": "KmsKeyId"})
}

func tfAlarm(_ *comparison, r *stateResource) object {
	out := renamed(r.Values, map[string]string{
		"alarm_actions": "AlarmActions", "alarm_description": "AlarmDescription", "comparison_operator": "ComparisonOperator",
		"dimensions": "Dimensions", "evaluation_periods": "EvaluationPeriods", "metric_name": "MetricName", "namespace": "Namespace",
		"ok_actions": "OKActions", "period": "Period", "statistic": "Statistic", "threshold": "Threshold",
		"treat_missing_data": "TreatMissingData",
	})
	queries := object{}
	for _, query := range listAt(r.Values, "metric_query") {
		q := renamed(query, map[string]string{"id": "Id", "expression": "Expression", "return_data": "ReturnData"})
		if metric := one(query, "metric"); metric != nil {
			q["MetricStat"] = renamed(metric, map[string]string{"stat": "Stat", "period": "Period"})
			q["MetricStat"].(object)["Metric"] = renamed(metric,
				map[string]string{"namespace": "Namespace", "metric_name": "MetricName", "dimensions": "Dimensions"})
		}
		queries[textAt(query, "id")] = q
	}
	out["Metrics"] = queries
	return out
}

// throughput leaves -1 out: no limit.
func throughput(block any) object {
	limit := one(block, "on_demand_throughput")
	out := object{}
	for name, other := range map[string]string{
		"max_read_request_units": "MaxReadRequestUnits", "max_write_request_units": "MaxWriteRequestUnits",
	} {
		if value, ok := limit[name].(float64); ok && value != -1 {
			out[other] = value
		}
	}
	return out
}

func tfTable(_ *comparison, r *stateResource) object {
	v := r.Values
	key := func(block any) []any {
		return []any{
			object{"AttributeName": at(block, "hash_key"), "KeyType": "HASH"},
			object{"AttributeName": at(block, "range_key"), "KeyType": "RANGE"},
		}
	}
	var definitions, indexes []any
	for _, attribute := range listAt(v, "attribute") {
		definitions = append(definitions, renamed(attribute, map[string]string{"name": "AttributeName", "type": "AttributeType"}))
	}
	for _, index := range listAt(v, "global_secondary_index") {
		projection := object{"ProjectionType": at(index, "projection_type")}
		if names := listAt(index, "non_key_attributes"); len(names) > 0 {
			projection["NonKeyAttributes"] = names // a set, which stands in order
		}
		indexes = append(indexes, object{
			"IndexName": at(index, "name"), "KeySchema": key(index), "Projection": projection,
			"OnDemandThroughput": throughput(index),
		})
	}
	recovery := renamed(one(v, "point_in_time_recovery"),
		map[string]string{"enabled": "PointInTimeRecoveryEnabled", "recovery_period_in_days": "RecoveryPeriodInDays"})
	encryption := renamed(one(v, "server_side_encryption"), map[string]string{"enabled": "SSEEnabled", "kms_key_arn": "KMSMasterKeyId"})
	if len(encryption) > 0 {
		encryption["SSEType"] = "KMS" // the only one
	}
	return object{
		"SSESpecification": encryption,
		"BillingMode":      v["billing_mode"], "DeletionProtectionEnabled": v["deletion_protection_enabled"], "KeySchema": key(v),
		"AttributeDefinitions": sorted(definitions, "AttributeName"), "GlobalSecondaryIndexes": sorted(indexes, "IndexName"),
		"OnDemandThroughput": throughput(v), "PointInTimeRecoverySpecification": recovery,
		"StreamSpecification":     object{"StreamViewType": v["stream_view_type"]},
		"TimeToLiveSpecification": renamed(one(v, "ttl"), map[string]string{"attribute_name": "AttributeName", "enabled": "Enabled"}),
	}
}

func tfRole(c *comparison, r *stateResource) object {
	policy := c.made[strings.Replace(r.Address, "aws_iam_role.", "aws_iam_role_policy.", 1)]
	if policy.Values["role"] != r.Values["name"] {
		return object{"Policies": "of another role"}
	}
	out := renamed(r.Values, map[string]string{"permissions_boundary": "PermissionsBoundary"})
	for _, attachment := range c.made {
		if attachment.Type == "aws_iam_role_policy_attachment" && attachment.Values["role"] == r.Values["name"] {
			out["ManagedPolicyArns"] = []any{attachment.Values["policy_arn"]}
		}
	}
	maps.Copy(out, object{
		"AssumeRolePolicyDocument": parsed(textAt(r.Values, "assume_role_policy")),
		"Policies": []any{object{
			"PolicyName": policy.Values["name"], "PolicyDocument": parsed(textAt(policy.Values, "policy")),
		}},
	})
	return out
}

func tfAlias(_ *comparison, r *stateResource) object {
	return renamed(r.Values, map[string]string{"name": "Name", "function_name": "FunctionName", "function_version": "FunctionVersion"})
}

func tfURL(c *comparison, r *stateResource) object {
	out := renamed(r.Values, map[string]string{"authorization_type": "AuthType", "invoke_mode": "InvokeMode"})
	for _, alias := range c.made { // CloudFormation names it by its ARN
		v := alias.Values
		if alias.Type == "aws_lambda_alias" && v["function_name"] == r.Values["function_name"] && v["name"] == r.Values["qualifier"] {
			out["TargetFunctionArn"] = v["arn"]
		}
	}
	return out
}

func tfMapping(_ *comparison, r *stateResource) object {
	v := r.Values
	out := renamed(v, map[string]string{
		"batch_size": "BatchSize", "bisect_batch_on_function_error": "BisectBatchOnFunctionError", "enabled": "Enabled",
		"event_source_arn": "EventSourceArn", "function_name": "FunctionName", "function_response_types": "FunctionResponseTypes",
		"maximum_record_age_in_seconds": "MaximumRecordAgeInSeconds", "maximum_retry_attempts": "MaximumRetryAttempts",
		"starting_position": "StartingPosition",
	})
	if out["Enabled"] == nil {
		out["Enabled"] = true // the provider's default
	}
	if scaling := one(v, "scaling_config"); scaling != nil {
		out["ScalingConfig"] = renamed(scaling, map[string]string{"maximum_concurrency": "MaximumConcurrency"})
	}
	if destination := one(one(v, "destination_config"), "on_failure"); destination != nil {
		out["DestinationConfig"] = object{"OnFailure": renamed(destination, map[string]string{"destination_arn": "Destination"})}
	}
	var filters []any
	for _, filter := range listAt(one(v, "filter_criteria"), "filter") {
		filters = append(filters, object{"Pattern": parsed(textAt(filter, "pattern"))})
	}
	if filters != nil {
		out["FilterCriteria"] = object{"Filters": filters}
	}
	return out
}

func tfFunction(c *comparison, r *stateResource) object {
	v := r.Values
	out := renamed(v, map[string]string{
		"architectures": "Architectures", "description": "Description", "handler": "Handler", "memory_size": "MemorySize",
		"reserved_concurrent_executions": "ReservedConcurrentExecutions", "role": "Role", "runtime": "Runtime", "timeout": "Timeout",
		"kms_key_arn": "KmsKeyArn", "layers": "Layers",
	})
	if out["ReservedConcurrentExecutions"] == float64(-1) {
		delete(out, "ReservedConcurrentExecutions")
	}
	out["RuntimeManagementConfig"] = object{"UpdateRuntimeOn": "Auto"} // AWS's default, which the module leaves as it is
	out["Environment"] = object{"Variables": one(v, "environment")["variables"]}
	out["TracingConfig"] = renamed(one(v, "tracing_config"), map[string]string{"mode": "Mode"})
	out["LoggingConfig"] = renamed(one(v, "logging_config"), map[string]string{
		"log_format": "LogFormat", "application_log_level": "ApplicationLogLevel", "system_log_level": "SystemLogLevel",
		"log_group": "LogGroup",
	})
	if network := one(v, "vpc_config"); network != nil {
		out["VpcConfig"] = renamed(network, map[string]string{"subnet_ids": "SubnetIds", "security_group_ids": "SecurityGroupIds"})
	}
	if letters := one(v, "dead_letter_config"); letters != nil {
		out["DeadLetterConfig"] = renamed(letters, map[string]string{"target_arn": "TargetArn"})
	}
	loops := c.made[strings.Replace(r.Address, "aws_lambda_function.role", "aws_lambda_function_recursion_config.loops", 1)]
	if loops.Values["function_name"] == v["function_name"] {
		out["RecursiveLoop"] = loops.Values["recursive_loop"]
	}
	return out
}

func tfInvokeConfig(_ *comparison, r *stateResource) object {
	return renamed(r.Values, map[string]string{
		"function_name": "FunctionName", "maximum_event_age_in_seconds": "MaximumEventAgeInSeconds",
		"maximum_retry_attempts": "MaximumRetryAttempts", "qualifier": "Qualifier",
	})
}

func tfSchedule(_ *comparison, r *stateResource) object {
	v := r.Values
	target := one(v, "target")
	out := renamed(v, map[string]string{"name": "Name", "schedule_expression": "ScheduleExpression"})
	out["FlexibleTimeWindow"] = renamed(one(v, "flexible_time_window"), map[string]string{"mode": "Mode"})
	of := renamed(target, map[string]string{"arn": "Arn", "role_arn": "RoleArn"})
	of["RetryPolicy"] = renamed(one(target, "retry_policy"), map[string]string{
		"maximum_event_age_in_seconds": "MaximumEventAgeInSeconds", "maximum_retry_attempts": "MaximumRetryAttempts",
	})
	of["DeadLetterConfig"] = renamed(one(target, "dead_letter_config"), map[string]string{"arn": "Arn"})
	out["Target"] = of
	return out
}

func tfQueue(c *comparison, r *stateResource) object {
	v := r.Values
	out := renamed(v, map[string]string{
		"content_based_deduplication": "ContentBasedDeduplication", "deduplication_scope": "DeduplicationScope",
		"fifo_throughput_limit": "FifoThroughputLimit", "message_retention_seconds": "MessageRetentionPeriod", "name": "QueueName",
		"sqs_managed_sse_enabled": "SqsManagedSseEnabled", "kms_master_key_id": "KmsMasterKeyId",
		"visibility_timeout_seconds": "VisibilityTimeout",
	})
	if v["fifo_queue"] == true {
		out["FifoQueue"] = true
	}
	if redrive := textAt(v, "redrive_policy"); redrive != "" {
		out["RedrivePolicy"] = parsed(redrive)
	}
	allow := textAt(v, "redrive_allow_policy")
	for _, separate := range c.made {
		if separate.Type == "aws_sqs_queue_redrive_allow_policy" && separate.Values["queue_url"] == v["url"] {
			allow = textAt(separate.Values, "redrive_allow_policy")
		}
	}
	if allow != "" {
		out["RedriveAllowPolicy"] = parsed(allow)
	}
	return out
}
