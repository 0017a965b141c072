module github.com/aws/aws-cdk-go/awscdk/v2

go 1.26.0

require github.com/aws/constructs-go/constructs/v10 v10.0.0
