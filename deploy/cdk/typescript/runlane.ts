// Runlane in the AWS CDK: the deployment template, with the program of an application and its parameters as properties.
//
// The resources are those of template.json, which is made from the template that `runlane init` writes; what they cost
// and what each parameter means is in docs/deploying.md. The template stays in SAM's language: CloudFormation translates
// it on deployment. What depends on properties alone is decided here, so it may refer to what the same app creates.
import * as fs from "fs";
import * as os from "os";
import * as path from "path";
import { Stack, Token } from "aws-cdk-lib";
import type { CfnResource } from "aws-cdk-lib";
import * as iam from "aws-cdk-lib/aws-iam";
import * as assets from "aws-cdk-lib/aws-s3-assets";
import { CfnInclude } from "aws-cdk-lib/cloudformation-include";
import { Construct } from "constructs";

/** What can be said of an environment. Only code has no default. */
export interface RunlaneProps {
  /** The program: a folder with a bootstrap in it, or a zip of that. It is bridge, relay and tick. */
  readonly code: string;
  /** The server's program, which is another one: a folder or a zip. Needed with serverScopes. */
  readonly serverCode?: string;
  /** Environment variables of the program. Those that begin with RUNLANE_ are set here. Default: none. */
  readonly codeVariables?: { readonly [name: string]: string };

  /** Every key and every message is scoped by it. One deployment ticks an environment. Default: default. */
  readonly environment?: string;
  /**
   * The application's queue that the standard SQS queue carries. With default, that queue carries every other queue
   * too. Default: default.
   */
  readonly standardQueue?: string;
  /** The application's queue that the FIFO queue carries. Empty, none is, and it costs nothing. Default: none. */
  readonly fifoQueue?: string;
  /**
   * Seconds that an invocation of the bridge may take, and with it an attempt. The queues' visibility timeout is six
   * times that. Default: 60.
   */
  readonly bridgeTimeout?: 30 | 60 | 120 | 300 | 600 | 900;
  /** Megabytes of the bridge; processor time grows with it. Default: 256. */
  readonly bridgeMemory?: number;
  /** Most wakeups in one invocation. They share its time, so 1 suits long attempts. Default: 10. */
  readonly bridgeBatchSize?: number;
  /** Most invocations of the bridge at once, for each of its queues. Default: 50. */
  readonly bridgeConcurrency?: number;
  /**
   * Environments that are kept free for the tick. 0 keeps none, which an account with a limit of 10 needs. Default: 2.
   */
  readonly tickConcurrency?: number;
  /** Most read units a second of the table, and of each index. 0 for the account's own limit. Default: 0. */
  readonly maximumReadUnits?: number;
  /** Most write units a second of the table, and of each index. 0 for the account's own limit. Default: 0. */
  readonly maximumWriteUnits?: number;
  /** What callers of the server's URL may do. Default: nothing, and there is no server. */
  readonly serverScopes?: readonly ("read" | "trigger" | "operate")[];
  /**
   * Stream ARN of a table to use, one that a deleted stack left or that was restored. Empty, the stack makes and keeps
   * a table. Default: none.
   */
  readonly existingTable?: string;
  /** Refuses to delete the table, for every caller. Default: true. */
  readonly deletionProtection?: boolean;
  /** Days that the table can be restored to any second of. Default: 35. */
  readonly recoveryDays?: number;
  /** Days that logs are kept. Default: 30. */
  readonly logRetention?: 1 | 3 | 5 | 7 | 14 | 30 | 60 | 90 | 180 | 365;
  /** The lowest level that the functions log. Default: INFO. */
  readonly logLevel?: "DEBUG" | "INFO" | "WARN" | "ERROR";
  /** How traffic moves to a new version. AllAtOnce does without CodeDeploy. Default: Canary10Percent5Minutes. */
  readonly deployment?:
    | "AllAtOnce"
    | "Canary10Percent5Minutes"
    | "Canary10Percent15Minutes"
    | "Linear10PercentEvery1Minute";
  /** Any text. Another one publishes a version of every function. Default: none. */
  readonly revision?: string;
  /** Secrets that the bridge reads when it starts, ARNs of Secrets Manager and Parameter Store. Default: none. */
  readonly bridgeSecrets?: readonly string[];
  /** Those of the relay. Default: none. */
  readonly relaySecrets?: readonly string[];
  /** Those of the tick. Default: none. */
  readonly tickSecrets?: readonly string[];
  /** Those of the server. Default: none. */
  readonly serverSecrets?: readonly string[];
  /** ARN of a KMS key that encrypts table, queues, logs and variables. Default: AWS's own keys do. */
  readonly kmsKey?: string;
  /**
   * Ids of subnets, to run the functions in a VPC. DynamoDB, SQS and the logs have to be reachable there. Default: none.
   */
  readonly subnets?: readonly string[];
  /** Ids of the functions' security groups there. Default: none. */
  readonly securityGroups?: readonly string[];
  /** ARN of a policy that bounds every role. Default: none. */
  readonly permissionsBoundary?: string;
  /** ARNs of layer versions of every function. Default: none. */
  readonly layers?: readonly string[];

  /** The functions' own metrics, priced each while it is sent. Default: true. */
  readonly metrics?: boolean;
  /** The dashboard. Default: true. */
  readonly dashboard?: boolean;
  /** All alarms. Each also has a separate parameter. Default: true. */
  readonly alarms?: boolean;
  /** ARN of the SNS topic that alarms notify. Empty, they only change their state. Default: none. */
  readonly alarmTopic?: string;
  /** The bridge runs near its limit of concurrency. Default: true. */
  readonly alarmConcurrency?: boolean;
  /** Transactions meet each other on the same items often. Default: true. */
  readonly alarmConflicts?: boolean;
  /** Something lies in a dead-letter queue. Default: true. */
  readonly alarmDeadLetters?: boolean;
  /** A function fails invocations. A gradual deployment rolls back by those of the new version. Default: true. */
  readonly alarmErrors?: boolean;
  /**
   * The bridge is invoked more often than invocationsLimit. Recursion is allowed, so nothing else would tell. Default:
   * true.
   */
  readonly alarmInvocations?: boolean;
  /** A run is due for long, or no tick says. Needs metrics. Default: true. */
  readonly alarmOldestDue?: boolean;
  /** A wakeup waits in a queue or in the table's stream for long. Default: true. */
  readonly alarmOldestMessage?: boolean;
  /** SQS refuses wakeups. Needs metrics. Default: true. */
  readonly alarmRefusedWakeups?: boolean;
  /** DynamoDB throttles the table or an index, or Lambda the bridge. Default: true. */
  readonly alarmThrottles?: boolean;
  /** Invocations of the bridge in five minutes that raise the alarm. Default: 100000. */
  readonly invocationsLimit?: number;
}

interface Parameter {
  readonly Type: string;
  readonly Default: string | number;
  readonly AllowedValues?: readonly (string | number)[];
  readonly AllowedPattern?: string;
  readonly MinValue?: number;
  readonly MaxValue?: number;
}

type Values = Record<string, string>;
type Json = any; // eslint-disable-line @typescript-eslint/no-explicit-any

const functions = ["Bridge", "Relay", "Tick"];
const read = (): Json => JSON.parse(fs.readFileSync(path.join(__dirname, "template.json"), "utf8"));

/**
 * One environment: a table, queues, the functions and what watches them. A stack has at most one, because queues and
 * alarms are called after the stack; an app has as many as it has stacks. Grants to it are grants to the program that
 * executes runs.
 */
export class Runlane extends Construct implements iam.IGrantable {
  /** The included template, for what the properties do not reach. */
  readonly template: CfnInclude;
  /** The role of the function that executes runs. */
  readonly grantPrincipal: iam.IPrincipal;
  private readonly parameters: Values = {};

  constructor(scope: Construct, id: string, props: RunlaneProps) {
    super(scope, id);
    const others = Stack.of(this).node.findAll().filter((node) => node instanceof Runlane && node !== this);
    if (others.length > 0) {
      fail(`${others[0].node.path} is in the stack already: queues are called after their stack`);
    }
    const template = read();
    const parameters = this.parameters;
    for (const [name, parameter] of Object.entries<Parameter>(template.Parameters)) {
      const given = (props as unknown as Record<string, unknown>)[name[0].toLowerCase() + name.slice(1)];
      parameters[name] = checked(name, parameter, given ?? parameter.Default);
    }
    if (parameters.StandardQueue === parameters.FifoQueue) {
      fail("standardQueue and fifoQueue are two queues of the application; give them two names");
    }
    if ((parameters.Subnets === "") !== (parameters.SecurityGroups === "")) {
      fail("subnets and securityGroups go together");
    }
    const programs: Record<string, string> = Object.fromEntries(functions.map((name) => [name, props.code]));
    if (parameters.ServerScopes !== "") {
      programs.Server = props.serverCode ?? fail("serverScopes needs serverCode: the server is another program");
    }
    this.template = this.include(decided(template, parameters), parameters);

    const code = new assets.Asset(this, "Code", { path: props.code });
    for (const [name, path] of Object.entries(programs)) {
      const role = this.resource(name);
      const asset = name === "Server" ? new assets.Asset(this, "ServerCode", { path }) : code;
      role.addPropertyOverride("CodeUri", { Bucket: asset.s3BucketName, Key: asset.s3ObjectKey });
      for (const [variable, value] of Object.entries(props.codeVariables ?? {})) {
        if (variable.startsWith("RUNLANE_")) fail(`codeVariables: ${variable} is set by Runlane`);
        role.addPropertyOverride(`Environment.Variables.${variable}`, value);
      }
    }
    this.grantPrincipal = iam.Role.fromRoleName(this, "Role", this.resource("BridgeRole").ref).grantPrincipal;
  }

  /** A resource of the template by its logical ID, such as WorkQueue. */
  resource(logicalId: string): CfnResource {
    return this.template.getResource(logicalId);
  }

  /** An output of the template by its name, such as WorkDeadLettersUrl. */
  output(name: string): string {
    return Token.asString(this.template.getOutput(name).value);
  }

  /** What awslane.FromEnv reads: the environment variables of programs that trigger runs or look at them. */
  get variables(): { [name: string]: string } {
    return {
      RUNLANE_ENV: this.output("EnvironmentName"),
      RUNLANE_TABLE: this.output("TableName"),
      RUNLANE_QUEUES: this.output("Queues"),
    };
  }

  /** Allows what a program calls that triggers runs and waits for them. */
  grantTrigger(grantee: iam.IGrantable): void {
    this.grant(grantee, "TriggerPolicy");
  }

  /** Allows all that the command line does but a worker. */
  grantOperate(grantee: iam.IGrantable): void {
    this.grant(grantee, "OperatorPolicy");
  }

  /** Allows what a program calls that only looks. */
  grantRead(grantee: iam.IGrantable): void {
    this.grant(grantee, "ReadPolicy");
  }

  private grant(grantee: iam.IGrantable, output: string): void {
    const known: Record<string, string> = {
      "Arn": this.output("TableArn"),
      "WorkQueue.Arn": this.output("WorkQueueArn"),
      "FifoWorkQueue.Arn": this.output("FifoWorkQueueArn"),
      "KmsKey": this.parameters.KmsKey,
    };
    const resolved = (value: Json): string => {
      if (typeof value === "string") return value;
      const [text, names] = [value["Fn::Sub"]].flat();
      return text.replace(/\$\{([^}]+)\}/g, (_: string, name: string) => known[name] ?? resolved(names[name]));
    };
    const policy = JSON.parse(resolved(decided(read(), this.parameters).Outputs[output].Value));
    for (const statement of policy.Statement) {
      grantee.grantPrincipal.addToPrincipalPolicy(iam.PolicyStatement.fromJson(statement));
    }
  }

  /** CfnInclude takes a file and nothing else. */
  private include(template: Json, parameters: Values): CfnInclude {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), "runlane-"));
    try {
      const templateFile = path.join(folder, "template.json");
      fs.writeFileSync(templateFile, JSON.stringify(template));
      return new CfnInclude(this, "Template", { templateFile, parameters });
    } finally {
      fs.rmSync(folder, { recursive: true });
    }
  }
}

/** The template without conditions and mappings: the resources that exist, and the part of each Fn::If that counts. */
function decided(template: Json, parameters: Values): Json {
  const text = (value: Json): string => String(value?.Ref === undefined ? value : parameters[value.Ref]);
  const holds = (condition: Json): boolean => {
    if (typeof condition === "string") return holds(template.Conditions[condition]);
    const [[name, argument]] = Object.entries<Json>(condition);
    switch (name) {
      case "Condition": return holds(argument);
      case "Fn::Not": return !holds(argument[0]);
      case "Fn::And": return argument.every(holds);
      case "Fn::Or": return argument.some(holds);
      case "Fn::Equals": return text(argument[0]) === text(argument[1]);
      default: return fail(`${name} in a condition`);
    }
  };
  const part = (value: Json): Json => {
    if (value === null || typeof value !== "object") return value;
    if (Array.isArray(value)) return value.map(part).filter((item) => item?.Ref !== "AWS::NoValue");
    if ("Fn::FindInMap" in value) {
      const [map, key, name] = value["Fn::FindInMap"];
      return template.Mappings[map][text(key)]?.[name] ?? fail(`${map} has no ${text(key)}; cdk synth has to know it`);
    }
    if ("Fn::If" in value) {
      const [condition, then, otherwise] = value["Fn::If"];
      return part(holds(condition) ? then : otherwise);
    }
    const parts = Object.entries<Json>(value).map(([name, inner]) => [name, part(inner)]);
    return Object.fromEntries(parts.filter(([, inner]) => inner?.Ref !== "AWS::NoValue"));
  };
  const { Conditions, Mappings, Parameters, ...sections } = template;
  const out = part(sections);
  for (const section of [out.Resources, out.Outputs]) {
    for (const [id, { Condition, ...entry }] of Object.entries<Json>(section)) {
      if (Condition !== undefined && !holds(Condition)) delete section[id];
      else section[id] = entry;
    }
  }
  return { ...out, Parameters };
}

function fail(message: string): never {
  throw new Error(message);
}

/** Refuses what CloudFormation would refuse, and gives the value as CloudFormation has it: as text. */
function checked(name: string, parameter: Parameter, given: unknown): string {
  const text = Token.isUnresolved(given) ? Token.asString(given) : String(given);
  const value = Array.isArray(given) ? given.join(",") : text;
  if (Token.isUnresolved(value)) {
    return value;
  }
  const property = name[0].toLowerCase() + name.slice(1);
  const refuse = (allowed: string) => fail(`${property}: ${JSON.stringify(given)} is not ${allowed}`);
  if (parameter.AllowedValues && !parameter.AllowedValues.some((allowed) => String(allowed) === value)) {
    refuse(`one of ${parameter.AllowedValues.join(", ")}`);
  }
  if (parameter.AllowedPattern && !new RegExp(`^(?:${parameter.AllowedPattern})$`).test(value)) {
    refuse(`of the form ${parameter.AllowedPattern}`);
  }
  const { MinValue = -Infinity, MaxValue = Infinity } = parameter;
  if (parameter.Type === "Number" && !(Number(value) >= MinValue && Number(value) <= MaxValue)) {
    refuse(`from ${MinValue} to ${MaxValue}`);
  }
  return value;
}
