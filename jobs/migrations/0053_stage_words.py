from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0052_gateway_session_browser"),
    ]

    operations = [
        migrations.AlterField(
            model_name="attemptstage",
            name="name",
            field=models.CharField(
                choices=[
                    ("launch", "Provisioning"),
                    ("setup", "Setting up"),
                    ("workers", "Starting workers"),
                    ("run", "Running"),
                    ("teardown", "Terminating"),
                ],
                max_length=10,
            ),
        ),
    ]
