import java.lang.reflect.Field;
import org.eclipse.jetty.server.AbstractNetworkConnector;
import org.eclipse.jetty.server.Connector;
import org.eclipse.jetty.server.Server;
import software.amazon.dynamodb.services.local.main.ServerRunner;
import software.amazon.dynamodb.services.local.server.DynamoDBProxyServer;

/**
 * Starts DynamoDB Local on 127.0.0.1 only. By itself it listens on every interface and has no option for that.
 *
 * <p>LocalStack runs "java -javaagent:ddb-local-loader-0.1.jar -jar DynamoDBLocal.jar". This class is the main class of a
 * jar of that name, which has the distribution's jar on its class path. It stands in for the agent as well: LocalStack's own is
 * on no package registry, and all it does is lift a limit of 20 indexes.
 */
public final class LoopbackDynamoDB {
  private LoopbackDynamoDB() {}

  /** The agent that LocalStack insists on: nothing to do. */
  public static void premain(String arguments) {}

  public static void main(String[] arguments) throws Exception {
    start(arguments).join();
  }

  static DynamoDBProxyServer start(String... arguments) throws Exception {
    DynamoDBProxyServer server = ServerRunner.createServerFromCommandLineArgs(arguments);
    // Anything unexpected here throws, which ends the program before it listens anywhere.
    Field field = DynamoDBProxyServer.class.getDeclaredField("server");
    field.setAccessible(true);
    Connector[] connectors = ((Server) field.get(server)).getConnectors();
    if (connectors.length == 0) {
      throw new IllegalStateException("DynamoDB Local has no connector to keep on the loopback interface");
    }
    for (Connector connector : connectors) {
      ((AbstractNetworkConnector) connector).setHost("127.0.0.1");
    }
    server.start();
    return server;
  }
}
