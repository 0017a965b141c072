module example.com/app

go 1.26.0

require (
	github.com/aws/aws-cdk-go/awscdk/v2 v2.0.0
	github.com/aws/constructs-go/constructs/v10 v10.0.0
	github.com/aws/jsii-runtime-go v1.0.0
)

replace (
	github.com/aws/aws-cdk-go/awscdk/v2 => ./awscdk
	github.com/aws/constructs-go/constructs/v10 => ./constructs
	github.com/aws/jsii-runtime-go => ./jsii
)
