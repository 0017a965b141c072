module github.com/aws/constructs-go/constructs/v10

go 1.26.0
