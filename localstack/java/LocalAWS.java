import org.elasticmq.NodeAddress;
import org.elasticmq.rest.sqs.SQSRestServerBuilder;
import software.amazon.dynamodb.services.local.server.DynamoDBProxyServer;

/**
 * What tests need of AWS, in one process and on 127.0.0.1 only: SQS by ElasticMQ, DynamoDB and its streams by DynamoDB Local.
 *
 * <p>Arguments: the ports of SQS and of DynamoDB, the region, and the state folder, which tells whose process this is.
 */
public final class LocalAWS {
  private LocalAWS() {}

  public static void main(String[] arguments) {
    try {
      int port = Integer.parseInt(arguments[0]);
      DynamoDBProxyServer dynamodb = LoopbackDynamoDB.start("-inMemory", "-disableTelemetry", "-port", arguments[1]);
      SQSRestServerBuilder.withInterface("127.0.0.1")
          .withPort(port)
          .withServerAddress(new NodeAddress("http", "127.0.0.1", port, ""))
          .withAWSRegion(arguments[2])
          .start()
          .waitUntilStarted();
      System.out.println("Ready.");
      dynamodb.join();
    } catch (Throwable failure) {
      failure.printStackTrace();
      System.exit(1); // the other server's threads would keep the process
    }
  }
}
