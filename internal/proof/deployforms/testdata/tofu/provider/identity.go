package main

import (
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

const (
	account = "123456789012"
	region  = "eu-central-1"
)

// services says how the ARN of a type begins, after the account.
var services = map[string]string{
	"aws_cloudwatch_log_group":    "logs:log-group:",
	"aws_cloudwatch_metric_alarm": "cloudwatch:alarm:",
	"aws_dynamodb_table":          "dynamodb:table/",
	"aws_iam_role":                "iam:role/",
	"aws_lambda_function":         "lambda:function:",
	"aws_scheduler_schedule":      "scheduler:schedule/default/",
	"aws_sqs_queue":               "sqs:",
}

// identity is the value of an attribute that only AWS knows. It follows from the resource's name.
func identity(typeName, attribute string, kind tftypes.Type, values map[string]tftypes.Value) any {
	switch {
	case kind.Is(tftypes.Number):
		return 0
	case kind.Is(tftypes.Bool):
		return false
	case kind.Is(tftypes.List{}):
		return []tftypes.Value{}
	case kind.Is(tftypes.Map{}):
		return map[string]tftypes.Value{}
	}
	text := func(name string) string {
		var s string
		if v, ok := values[name]; ok && v.IsKnown() && !v.IsNull() && v.Type().Is(tftypes.String) {
			_ = v.As(&s)
		}
		return s
	}
	name := text("name")
	for _, other := range []string{"function_name", "alarm_name"} {
		if name == "" {
			name = text(other)
		}
	}
	if prefix := text("name_prefix"); name == "" && prefix != "" {
		name = prefix + "1"
	}
	url := "https://sqs." + region + ".amazonaws.com/" + account + "/" + name
	switch typeName + "." + attribute {
	case "aws_caller_identity.account_id":
		return account
	case "aws_region.region", "aws_region.name", "aws_region.id":
		return region
	case "aws_partition.partition":
		return "aws"
	case "aws_dynamodb_table.stream_arn":
		return arn("dynamodb", "table/"+name+"/stream/2026-01-01T00:00:00.000")
	case "aws_lambda_alias.arn":
		return arn("lambda", "function:"+text("function_name")+":"+name)
	case "aws_lambda_function_url.function_url":
		return "https://" + name + ".lambda-url." + region + ".on.aws/"
	case "aws_lambda_function.version":
		return "1"
	case "aws_sqs_queue.url", "aws_sqs_queue.id":
		return url
	}
	service, prefix, known := strings.Cut(services[typeName], ":")
	if attribute != "arn" || !known {
		return name
	}
	return arn(service, prefix+name)
}

func arn(service, resource string) string {
	place := region
	if service == "iam" {
		place = ""
	}
	return strings.Join([]string{"arn", "aws", service, place, account, resource}, ":")
}
