module github.com/aws/jsii-runtime-go

go 1.26.0
