resource "aws_cloudwatch_dashboard" "runs" {
  count          = var.dashboard ? 1 : 0
  dashboard_name = "${var.name}-${data.aws_region.current.region}"
  # Widgets flow two a row. In a list of metrics "." repeats what stands above.
  dashboard_body = templatefile("${path.module}/dashboard.json.tftpl", {
    region            = data.aws_region.current.region
    table             = local.table_name
    bridge            = aws_lambda_function.role["bridge"].function_name
    relay             = aws_lambda_function.role["relay"].function_name
    tick              = aws_lambda_function.role["tick"].function_name
    work              = aws_sqs_queue.work["work"].name
    fifo              = aws_sqs_queue.work["fifo"].name
    work_dead_letters = aws_sqs_queue.dead_letters["work"].name
    fifo_dead_letters = aws_sqs_queue.dead_letters["fifo"].name
    relay_failures    = aws_sqs_queue.failures["relay"].name
    tick_dead_letters = aws_sqs_queue.failures["tick"].name
  })
}
