// A stack for each set of properties in sets.json, then what the construct does with other resources and refuses.
import * as fs from "fs";
import * as cdk from "aws-cdk-lib";
import * as dynamodb from "aws-cdk-lib/aws-dynamodb";
import * as iam from "aws-cdk-lib/aws-iam";
import * as kms from "aws-cdk-lib/aws-kms";
import * as sns from "aws-cdk-lib/aws-sns";
import { Runlane, type RunlaneProps } from "./runlane";

const app = new cdk.App({ analyticsReporting: false });
const sets: Record<string, RunlaneProps> = JSON.parse(fs.readFileSync("sets.json", "utf8"));
for (const [name, props] of Object.entries(sets)) {
  new Runlane(new cdk.Stack(app, name), "Runlane", { ...props, code: "code", serverCode: "code" });
}

const changed = new Runlane(new cdk.Stack(app, "changed"), "Runlane", {
  code: "changed",
  codeVariables: { SHOP: "https://shop.example" },
});
const caller = new iam.Role(changed, "Caller", { assumedBy: new iam.AccountRootPrincipal() });
changed.grantTrigger(caller);
changed.grantRead(new iam.Role(changed, "Reader", { assumedBy: new iam.AccountRootPrincipal() }));
changed.grantOperate(new iam.Role(changed, "Operator", { assumedBy: new iam.AccountRootPrincipal() }));
new cdk.CfnOutput(changed, "Trigger", { value: JSON.stringify(changed.variables) });

// What is known on deployment alone.
const stack = new cdk.Stack(app, "related");
const topic = new sns.Topic(stack, "Topic");
const table = new dynamodb.CfnTable(stack, "Runs", {
  keySchema: [{ attributeName: "pk", keyType: "HASH" }],
  attributeDefinitions: [{ attributeName: "pk", attributeType: "S" }],
  streamSpecification: { streamViewType: "NEW_IMAGE" },
});
const related = new Runlane(stack, "Runlane", {
  code: "code",
  alarmTopic: topic.topicArn,
  existingTable: table.attrStreamArn,
  kmsKey: new kms.Key(stack, "Key").keyArn,
});
related.grantRead(new iam.Role(stack, "Reader", { assumedBy: new iam.AccountRootPrincipal() }));
topic.grantPublish(related);

const refused: string[] = [];
for (const wrong of [
  { bridgeTimeout: 61 }, { logLevel: "LOUD" }, { existingTable: "name" }, { fifoQueue: "default" },
  { bridgeBatchSize: 11 }, { codeVariables: { RUNLANE_ENV: "other" } },
  { subnets: ["subnet-1"] }, { serverScopes: ["work"] },
]) {
  try {
    new Runlane(new cdk.Stack(new cdk.App(), "wrong"), "Runlane", { code: "code", ...wrong } as unknown as RunlaneProps);
  } catch (error) {
    refused.push((error as Error).message);
  }
}
try {
  new Runlane(changed, "Second", { code: "code" });
} catch (error) {
  refused.push((error as Error).message);
  changed.node.tryRemoveChild("Second");
}
fs.writeFileSync("refused.json", JSON.stringify(refused));
